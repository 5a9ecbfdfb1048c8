"""The parameter block of the kernel that decodes interleaved rANS."""

from __future__ import annotations

from runtime.kernels.parameters import ParameterBlock

# symbol_of: uint8 for each slot, from 0. table: uint32 for each symbol, frequency << 16 | slots before it. low: what
# is added to symbols. states: uint32 for each lane, which the kernel advances. out: uint8 for each of `count` symbols.
RANS = ParameterBlock("RANS", "symbol_of table scale low states lanes words word_count out count".split())
