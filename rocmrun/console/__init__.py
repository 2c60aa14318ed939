"""All that a person or a pipe sees."""
