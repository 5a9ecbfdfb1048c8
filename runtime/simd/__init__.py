"""SIMD vectors as numba types, so that kernels are readable Python."""
