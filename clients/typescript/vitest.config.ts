import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { include: ["test/**/*.test.ts", "examples/**/*.test.ts"], testTimeout: 120_000, hookTimeout: 90_000 },
  // As those who have installed the package name it.
  resolve: { alias: { "ringer-client/node": "/src/node.ts", "ringer-client": "/src/index.ts" } },
});
