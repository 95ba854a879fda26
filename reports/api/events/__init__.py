"""Operations of the API about events by period, and the shapes of their answers."""
