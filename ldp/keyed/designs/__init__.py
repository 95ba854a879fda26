"""Reports that are one code of a design: columns of a Hadamard matrix, points of a projective space."""
