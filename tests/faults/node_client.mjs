// What Node's fetch sees of each fault: {fault: [url, timeout in ms]} on stdin, {fault: what was seen} on stdout.
import { readFileSync } from "node:fs";

const urls = JSON.parse(readFileSync(0, "utf8"));

const name = (error) => error.cause?.code ?? (error.name === "TypeError" ? error.cause?.name : error.name);

const ask = async ([url, timeout]) => {
  const answer = await fetch(url, { method: "POST", body: "{}", signal: AbortSignal.timeout(timeout) });
  const body = await answer.arrayBuffer();
  if (answer.status === 429) return `429 ${answer.headers.get("retry-after")}`;
  try {
    JSON.parse(new TextDecoder().decode(body));
  } catch (error) {
    return `${answer.status} ${error.name}`;
  }
  return `${answer.status} json`;
};

// The pool takes a connection back, or notices its reset, a moment after the call: until then the next call may use another
// one, or that one. fetch has no way to ask for a new connection.
const settle = () => new Promise((resolve) => setTimeout(resolve, 60));

const seen = {};
for (const [fault, place] of Object.entries(urls)) {
  try {
    seen[fault] = await ask(place);
  } catch (error) {
    seen[fault] = name(error);
  }
  if (fault.startsWith("stale")) {
    await settle();
    try {
      seen[fault] = `200, then ${await ask(place)}`;
    } catch (error) {
      seen[fault] = `200, then ${name(error)}`;
    }
  }
  await settle();
}
console.log(JSON.stringify(seen));
