"""From pattern graphs to physical plans: order, cost, distinctness, signatures, lowering."""
