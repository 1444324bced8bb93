# The programs are static, so the image needs nothing else. Build them first:
# make image does.
FROM scratch
COPY bin/manager bin/agent bin/cp-creds /
USER 65532:65532
