"""Start a locked image on AMD GPUs with no more rights than the job needs, and prove its GPUs first."""

__version__ = "0.1.0"
