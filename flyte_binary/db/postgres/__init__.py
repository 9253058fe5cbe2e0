"""PostgreSQL: connections, the writers that group commits, notifications between servers."""
