"""How partial states become answers: natively, in windows, in Python, or on slots that keep them."""
