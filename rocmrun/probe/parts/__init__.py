"""The probe in parts: `make probe` joins them into gpu_probe.py, the one file that travels."""
