// Sends prepared requests with a number of clients for a number of seconds, and writes a summary as JSON.
import http from "k6/http";
import { SharedArray } from "k6/data";

const bodies = new SharedArray("bodies", () => JSON.parse(open(__ENV.BODIES)));
const parameters = { headers: { "Content-Type": "application/json" }, timeout: "120s" };

export const options = {
  vus: Number(__ENV.CLIENTS),
  duration: `${__ENV.SECONDS}s`,
  gracefulStop: "120s",
  summaryTrendStats: ["med", "p(95)", "p(99)", "max", "count"],
};

export default function () {
  const number = (__VU * 7919 + __ITER) % bodies.length;
  http.post(__ENV.URL, bodies[number], parameters);
}

export function handleSummary(data) {
  const duration = data.metrics.http_req_duration.values;
  const failed = data.metrics.http_req_failed.values;
  const summary = {
    rate: data.metrics.http_reqs.values.rate,
    median: duration.med,
    p99: duration["p(99)"],
    count: duration.count,
    failed: failed.passes,
  };
  return { [__ENV.SUMMARY]: JSON.stringify(summary) };
}
