// The plan's `connect:` faults for Node: node --require THIS FILE, or NODE_OPTIONS=--require=THIS FILE.
// Reads GOLDENTRACE_CONNECT_FAULTS like faults/shim.py; only connections to the tool server are touched.
"use strict";
const net = require("node:net");

const given = JSON.parse(process.env.GOLDENTRACE_CONNECT_FAULTS || "null");
if (given) {
  const queue = given.faults.flatMap(([fault, times]) => Array(times).fill(fault));
  const connect = net.Socket.prototype.connect;

  const failure = (fault, host, port) => {
    if (fault === "dns") {
      const error = new Error(`getaddrinfo ENOTFOUND ${host}`);
      return Object.assign(error, { code: "ENOTFOUND", errno: -3008, syscall: "getaddrinfo", hostname: host });
    }
    const error = new Error(`connect ECONNREFUSED ${host}:${port}`);
    return Object.assign(error, { code: "ECONNREFUSED", errno: -111, syscall: "connect", address: host, port });
  };

  net.Socket.prototype.connect = function (...args) {
    // net.connect passes its arguments on as one array; a caller passes an object, or port and host.
    const first = Array.isArray(args[0]) ? args[0][0] : args[0];
    const options = typeof first === "object" && first !== null ? first : { port: args[0], host: args[1] };
    const host = typeof options.host === "string" ? options.host : "localhost";
    if (Number(options.port) !== given.port || !["127.0.0.1", "localhost"].includes(host) || queue.length === 0) {
      return connect.apply(this, args);
    }
    const fault = queue.shift();
    if (fault === "none") return connect.apply(this, args);
    this.connecting = true;
    process.nextTick(() => this.destroy(failure(fault, host, given.port)));
    return this;
  };
}
