from __future__ import annotations
import numpy as np
def net_savings(program, chance, cost):
    return np.arange(program.slots)
