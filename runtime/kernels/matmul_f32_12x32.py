"""float32 products for CPUs with 32 vector registers of 16 lanes (AVX-512)."""

from runtime.kernels.depthwise_f32_3x3 import clear, depthwise_row
from runtime.kernels.matmul_f32 import matmul_kernel

matmul_f32_12x32 = matmul_kernel(12, 2, depthwise_row, clear)
