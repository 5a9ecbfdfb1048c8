"""Largest integer and mean of windows in int16."""

from runtime.kernels.pooling_integers import integer_poolings
from runtime.simd.vector import I16x16

max_pool_i16, average_pool_i16 = integer_poolings(I16x16, -32768)
