"""int8 products for CPUs with 16 vector registers of 8 lanes (AVX2), or 32 of 4 (NEON)."""

from runtime.kernels.matmul_i8 import matmul_kernel

matmul_i8_6x16 = matmul_kernel(6, 1)
