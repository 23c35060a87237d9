#!/usr/bin/env node
// Runs the devboy of this platform, which npm installed as an optional dependency: nothing is fetched, nothing is installed here.
"use strict";
const { spawnSync } = require("node:child_process");

const name = `@devboy/${process.platform}-${process.arch}`;
let binary;
try {
  binary = require.resolve(`${name}/bin/devboy${process.platform === "win32" ? ".exe" : ""}`);
} catch {
  console.error(`devboy: there is no package ${name}. Either devboy is not built for this platform, or npm was told to leave`);
  console.error("out optional dependencies (--omit=optional); `cargo binstall devboy` is another way.");
  process.exit(1);
}
const { status, signal, error } = spawnSync(binary, process.argv.slice(2), { stdio: "inherit" });
if (error) {
  console.error(`devboy: ${error.message}`);
  process.exit(1);
}
if (signal) process.kill(process.pid, signal);
process.exit(status ?? 1);
