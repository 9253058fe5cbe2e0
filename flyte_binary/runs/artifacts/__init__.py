"""ArtifactService: typed values that tasks and people publish under a name, in versions and partitions."""
