"""Operations of the API about presence by slot and its forecasts, and the shapes of their answers."""
