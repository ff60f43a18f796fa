const assert = require("node:assert/strict");
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { test } = require("node:test");

test("the shared text has five words", () => {
  const text = readFileSync(join(__dirname, "../text.txt"), "utf8");
  assert.equal(text.split(/\s+/).filter(Boolean).length, 5);
});
