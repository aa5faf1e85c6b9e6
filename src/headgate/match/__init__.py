"""What asks operators or matches graphs, for the events that the filters leave open."""
