# The server: docker build -t headgate . && docker run -p 8700:8700 -e HEADGATE_TOKENS='[...]' headgate --store dynamodb://limits
FROM node:22-slim AS build
WORKDIR /source
COPY . .
RUN npm ci && npm pack --pack-destination /tmp

FROM node:22-slim
ENV NODE_ENV=production
COPY --from=build /tmp/headgate-*.tgz /tmp/
# The credential providers find the role of the container; everything else is in the package.
RUN npm install --global --omit=dev --no-fund --no-audit /tmp/headgate-*.tgz @aws-sdk/credential-providers@3 \
  && rm -rf /tmp/headgate-*.tgz /root/.npm \
  && mkdir /data && chown node:node /data
USER node
WORKDIR /data
VOLUME /data
EXPOSE 8700
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:8700/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["headgate", "serve", "--host", "0.0.0.0", "--port", "8700"]
