"""The stand-alone script that runs inside the container."""
