# The demo image: a base with python3, and torch as scripts/torch_wheel.py fetched it for that Python.
ARG BASE
FROM ${BASE}
ARG SITE_PACKAGES
COPY site/ ${SITE_PACKAGES}/
# On a read-only root Python could never keep what it compiled: `import torch` takes twice as long.
# A file meant for a newer Python does not compile, and is not imported either: that is no failure.
RUN python3 -m compileall -q -j 0 ${SITE_PACKAGES} || true
