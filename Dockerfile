# Both programs are static, so the image needs nothing else. Build them first:
# make image does.
FROM scratch
COPY bin/manager bin/agent /
USER 65532:65532
