"""What is removed after how long."""
