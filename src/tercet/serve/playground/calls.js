// The calls behind the results, as code in several languages.
import { address, hasKey } from "./api.js";
import { json, python, shell } from "./quote.js";

const VARIABLE = "TERCET_API_KEY";
const PACKAGED = ["bi", "poly", "cross"];

/**
 * @typedef {object} Call
 * @property {string} id of the language
 * @property {(model: {id: string, kind: string}) => string | null} write null where it does not apply
 */

/**
 * @param {{context: string | string[], candidates: string[]}} inputs
 * @param {{id: string, kind: string}[]} models
 */
export function rankCalls({ context, candidates }, models) {
  const body = (model) => ({ model: model.id, context, candidates, k: candidates.length });
  return {
    models,
    calls: [
      { id: "curl", write: (model) => curl("v1/rank", body(model)) },
      { id: "library", write: (model) => rankLibrary(model, context, candidates) },
      { id: "http", write: (model) => http("v1/rank", body(model), "ranking") },
      { id: "cohere", write: (model) => cohere(model, asText(context), candidates) },
      { id: "openai", write: (model) => (model.kind === "bi" ? openai(model, asText(context), candidates) : null) },
    ],
  };
}

/** @param {object} body of /v1/search */
export function searchCalls(body, reranker) {
  return {
    models: [],
    calls: [
      { id: "curl", write: () => curl("v1/search", body) },
      { id: "library", write: () => searchLibrary(body, reranker) },
      { id: "http", write: () => http("v1/search", body, "hits") },
    ],
  };
}

const asText = (context) => (Array.isArray(context) ? context.join("\n") : context);

function curl(path, body) {
  const key = hasKey() ? ` \\\n  -H "Authorization: Bearer $${VARIABLE}"` : "";
  return `curl ${shell(address(path))} \\\n  -H 'Content-Type: application/json'${key} \\\n  -d ${shell(json(body))}`;
}

function http(path, body, list) {
  const key = hasKey() ? `\n        "Authorization": f"Bearer {os.environ['${VARIABLE}']}",` : "";
  return `import json
${hasKey() ? "import os\n" : ""}from urllib.request import Request, urlopen

body = ${python(body)}
request = Request(
    ${python(address(path))},
    data=json.dumps(body).encode(),
    headers={
        "Content-Type": "application/json",${key}
    },
)
with urlopen(request) as answer:
    for each in json.load(answer)["${list}"]:
        print(f"{each['score']:.3f}", each["text"])`;
}

function rankLibrary({ id }, context, candidates) {
  return `import tercet

scorer = tercet.load(${python(id)})${sourceNote(id)}
context = ${python(context)}
candidates = ${python(candidates)}
for ranked in scorer.rank(context, candidates, k=len(candidates)):
    print(f"{ranked.score:.3f}", ranked.text)`;
}

function searchLibrary({ index, context, k, mode, rerank }, reranker) {
  const loaded = rerank ? `, reranker=${python(reranker)}` : "";
  const depth = rerank ? `, rerank=${rerank}` : "";
  return `import tercet

# The folder of the index on the server
retriever = tercet.Retriever.open(${python(`${index}.tercet`)}${loaded})
for hit in retriever.search(${python(context)}, k=${k}, mode="${mode}"${depth}):
    print(f"{hit.score:.3f}", hit.text)`;
}

const sourceNote = (id) => (PACKAGED.includes(id) ? "" : "  # its folder or Hugging Face id");

const client = () =>
  hasKey()
    ? { imports: "import os\n\n", key: `os.environ["${VARIABLE}"]` }
    : { imports: "", key: '"none"' };

function cohere({ id }, query, documents) {
  const { imports, key } = client();
  return `${imports}import cohere

client = cohere.ClientV2(api_key=${key}, base_url=${python(address("").replace(/\/$/, ""))})
documents = ${python(documents)}
answer = client.rerank(
    model=${python(id)},
    query=${python(query)},
    documents=documents,
)
for result in answer.results:
    print(f"{result.relevance_score:.3f}", documents[result.index])`;
}

function openai({ id }, context, candidates) {
  const { imports, key } = client();
  return `${imports}import numpy as np
from openai import OpenAI

client = OpenAI(api_key=${key}, base_url=${python(address("v1"))})
context = ${python(context)}
candidates = ${python(candidates)}


def embed(texts, side):
    answer = client.embeddings.create(
        model=${python(id)}, input=texts, extra_body={"input_type": side}
    )
    return np.array([each.embedding for each in answer.data])


scores = embed(candidates, "candidate") @ embed([context], "context")[0]
for position in np.argsort(-scores, kind="stable"):
    print(f"{scores[position]:.3f}", candidates[position])`;
}
