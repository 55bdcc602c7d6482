"""The coupling T: barycentric supervised fused Gromov-Wasserstein (BSFGW), semi-relaxed and balanced."""
