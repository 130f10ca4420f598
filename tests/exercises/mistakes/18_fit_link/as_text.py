# wrong value: fit returns ('2.00000000000 | expected two numbers
# [answer 2]
import numpy as np
t = np.array([typical(repeats) for repeats in seconds])
beta, alpha = np.polyfit(np.array(sizes, float), t, 1, w=1 / t)
return f"{alpha:.18g}", f"{beta:.18g}"
