"""AMD's support matrix, and what it says of a job."""
