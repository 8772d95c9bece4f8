"""The paper's objective on tensors: stationarity, resolution and infomax of a lifted batch."""
