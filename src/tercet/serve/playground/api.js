// Calls of the server. A missing key and models that are still being loaded are dealt with here.

const READY_POLL_MS = 1000;

/** An answer that is an error, or no answer: then `status` is 0. */
export class ApiError extends Error {
  constructor({ status, type, message, requestId = null, retryAfter = null }) {
    super(message);
    Object.assign(this, { status, type, requestId, retryAfter });
  }
}

/** What the page does meanwhile; set by notices.js. */
export const recovery = {
  /** @type {(refused: boolean) => Promise<string>} */
  askForKey: () => Promise.reject(new Error("there is nobody to ask for a key")),
  onLoading: () => {},
  onReady: () => {},
};

let key = null; // in memory only: closing the page forgets it
let asking = null;

export const hasKey = () => key !== null;

/** The address of a route, as other programs reach it. */
export const address = (path) => new URL(path, document.baseURI).href;

/**
 * The answer of a route, and the time that the round trip took.
 * @param {string} path such as "v1/rank"
 * @param {object} [body] sent as JSON; without one, the call is a GET
 * @returns {Promise<{data: any, seconds: number}>}
 */
export async function call(path, body, { signal } = {}) {
  for (;;) {
    try {
      return await once(path, body, signal);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.status === 401) await newKey();
      else if (error.status === 503 && error.type === "loading") await ready(signal);
      else throw error;
    }
  }
}

async function once(path, body, signal) {
  const began = performance.now();
  const response = await send(path, body, signal);
  const data = await response.json().catch(() => null);
  if (!response.ok) throw problem(response, data?.error ?? {});
  if (data === null) throw new ApiError({ status: 0, type: "unreachable", message: "" });
  return { data, seconds: (performance.now() - began) / 1000 };
}

async function send(path, body, signal) {
  const headers = key === null ? {} : { Authorization: `Bearer ${key}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const method = body === undefined ? "GET" : "POST";
  try {
    return await fetch(address(path), { method, headers, body: JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError({ status: 0, type: "unreachable", message: "" });
  }
}

function problem(response, error) {
  return new ApiError({
    status: response.status,
    type: error.type ?? "unknown",
    message: error.message ?? response.statusText,
    requestId: error.request_id ?? response.headers.get("x-request-id"),
    retryAfter: Number(response.headers.get("retry-after")) || null,
  });
}

async function newKey() {
  asking ??= recovery.askForKey(key !== null).finally(() => (asking = null));
  key = await asking;
}

async function ready(signal) {
  recovery.onLoading();
  for (;;) {
    const response = await send("health/ready", undefined, signal).catch((error) => {
      if (error.name === "AbortError") throw error; // otherwise the server may be starting again
    });
    if (response?.ok) break;
    await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
  }
  recovery.onReady();
}
