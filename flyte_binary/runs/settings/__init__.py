"""Settings: what holds for the runs of an organization, a domain or a project that do not say otherwise."""
