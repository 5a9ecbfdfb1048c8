"""int8 products for CPUs with 32 vector registers of 16 lanes (AVX-512)."""

from runtime.kernels.matmul_i8 import matmul_kernel

matmul_i8_12x32 = matmul_kernel(12, 2)
