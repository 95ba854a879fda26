"""Workers and their broker: queues, signs of life, transport."""
