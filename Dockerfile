# The programs are static, so the image needs nothing else. "make image" builds
# them before the image.
FROM scratch
COPY bin/manager bin/agent bin/cp-creds /
USER 65532:65532
