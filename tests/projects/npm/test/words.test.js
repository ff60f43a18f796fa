import assert from "node:assert/strict";
import { test } from "node:test";
import { count } from "../src/words.js";

test("words are counted", () => assert.equal(count("a text  of five words"), 5));
