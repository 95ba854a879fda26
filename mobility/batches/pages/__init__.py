"""What the pages of a batch share: who may open it, how far it is, undoing a day."""
