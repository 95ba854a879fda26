"""What a plan will show of an expected crowd: model, example, advice and texts. Reads no data of a study."""
