"""Where a quantized model loses accuracy, and what to do about it: `converter.debug.compare(model, calibration)`, or
`python -m converter.debug`.
"""

from converter.debug.advice import Advice, Trial
from converter.debug.compare import compare
from converter.debug.comparison import Comparison, Row

__all__ = ["Advice", "Comparison", "Row", "Trial", "compare"]
