// Sends prepared requests at a fixed rate, whatever the server does, and writes a summary as JSON.
import http from "k6/http";
import { SharedArray } from "k6/data";
import { Trend } from "k6/metrics";

const bodies = new SharedArray("bodies", () => JSON.parse(open(__ENV.BODIES)));
const parameters = { headers: { "Content-Type": "application/json" }, timeout: "60s" };
const accepted = new Trend("accepted");
const refused = new Trend("refused");
const other = new Trend("other");

export const options = {
  scenarios: {
    load: {
      executor: "constant-arrival-rate",
      rate: Number(__ENV.RATE),
      timeUnit: "10s",
      duration: `${__ENV.SECONDS}s`,
      preAllocatedVUs: Number(__ENV.VUS),
      maxVUs: 1000,
    },
  },
  summaryTrendStats: ["med", "p(99)", "max", "count"],
};

export default function () {
  const number = (__VU * 7919 + __ITER * 104729) % bodies.length;
  const answer = http.post(__ENV.URL, bodies[number], parameters);
  if (answer.status === 200) {
    accepted.add(answer.timings.duration);
  } else if (answer.status === 429 && answer.headers["Retry-After"]) {
    refused.add(answer.timings.duration);
  } else {
    other.add(answer.timings.duration);
  }
}

export function handleSummary(data) {
  const summary = { dropped: data.metrics.dropped_iterations ? data.metrics.dropped_iterations.values.count : 0 };
  for (const name of ["accepted", "refused", "other"]) {
    const values = data.metrics[name] ? data.metrics[name].values : {};
    summary[name] = { count: values.count || 0, median: values.med || 0, p99: values["p(99)"] || 0 };
  }
  return { [__ENV.SUMMARY]: JSON.stringify(summary) };
}
