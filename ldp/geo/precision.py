"""Additional loss by finite precision of planar Laplace noise, and the proof of `certified_epsilon`.

Apart from the kernels, which say where the constants come from: reading a plan needs no compiler.

Z* is the ideal noisy point, drawn with real numbers whose leading bits are ours; Z is ours. With epsilon'
what is drawn, u the side of a square and R* the length of the noise, they differ by at most half a step and
the arithmetic's errors: |Z - Z*| <= RADIUS_ERROR / epsilon' + ANGLE_ERROR R* + PLACE_ERROR u. For noise up to
R1 = rmax + 40 / epsilon', rmax being the diagonal of the grid, call this delta. Longer noise may end
anywhere.

A code stands for a product A of intervals I x J of length at least u; at the edge, with all that is clamped
to it. The law P of Z* from some place has a density that changes by at most e^(epsilon' t) over a distance t.
A strip of width delta next to A, shifted by t in [delta, u], lies within A and covers no point longer than
delta. So P(strip) <= delta / (u - delta) e^(epsilon' u) P(A), and also for a strip inside. With
b = 2 delta / (u - delta) e^(epsilon' u), widening I and then J by delta on both sides multiplies P by at most
(1 + b)^2, narrowing them by at least (1 - b)^2. Long noise adds or takes at most rho P(A), where
rho = (1 + epsilon' R1) e^(-epsilon' R1) / (u^2 epsilon'^2 e^(-epsilon' rmax) / (2 pi)). Hence from two places
at distance d

    P(report | x) / P(report | x') <= e^(epsilon' d) ((1 + b)^2 + rho) / ((1 - b)^2 - rho).

Andrés et al. 2013 (theorem 4.1) have epsilon' d plus ln((1 + a) / (1 - a)), a = 2 e^(epsilon' u) / q,
q = u / (rmax dtheta). Whenever b + rho <= a / 2 < 1 / 2, theirs is the larger one: the right side above is at
most e^(epsilon' d) ((1 + a / 2) / (1 - a / 2))^2, and 2 artanh(a / 2) <= artanh(a). It is so for

    dtheta = (2 delta / (1 - delta / u) + rho u) / rmax,

which is `angle_step`. Different places are at least u apart, so a constant c is at most (c / u) d, and
reports keep epsilon' + (1/u) ln((q + 2 e^(epsilon' u)) / (q - 2 e^(epsilon' u))): `certified_epsilon`.
Unlike the theorem this covers clamped points. Tests enumerate every angle and radius of small samplers.
"""

from typing import Final

RADIUS_ERROR: Final = 2.6e-10  # in units of 1 / epsilon
ANGLE_ERROR: Final = 7.4e-10  # in radians
PLACE_ERROR: Final = 1e-11  # in squares
