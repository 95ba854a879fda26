"""Reports among fakes (RS+FD, RS+RFD) with keyed bits."""
