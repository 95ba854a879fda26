"""Prediction of a plan's results for an expected crowd: model, example, advice, texts. Reads no data."""
