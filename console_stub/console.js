// The runs of this server, read from the same services that the SDK uses. A stand-in with real data until the
// console is there: the links that `flyte run` prints lead somewhere.
const base = document.querySelector("script[src$='console.js']").src.replace(/\/[^/]*$/, "");
const root = new URL(document.documentElement.dataset.root, location);
const REFRESH_MILLISECONDS = 2000;

async function call(method, body) {
  const answer = await fetch(new URL(`flyteidl2.${method}`, root), {
    method: "POST",
    headers: { "content-type": "application/json", "connect-protocol-version": "1" },
    body: JSON.stringify(body),
  });
  const message = await answer.json();
  if (!answer.ok) throw new Error(message.message || answer.statusText);
  return message;
}

function element(name, properties = {}, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

const phaseOf = (status) => (status?.phase ?? "").replace("ACTION_PHASE_", "");
const phaseCell = (status) => element("td", { className: phaseOf(status), textContent: phaseOf(status) });
const when = (time) => (time ? new Date(time).toLocaleString() : "");
const seconds = (status) => (status?.durationMs ? `${(Number(status.durationMs) / 1000).toFixed(1)} s` : "");

function table(titles, rows) {
  const head = element("tr", {}, ...titles.map((title) => element("th", { scope: "col", textContent: title })));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}

async function showRuns() {
  const { runs = [] } = await call("workflow.RunService/ListRuns", {
    request: { limit: 100, sortByFields: [{ key: "created_at", direction: "DESCENDING" }] },
  });
  if (!runs.length) return [element("p", { textContent: "No runs yet. Try: flyte run hello.py main" })];
  const rows = runs.map(({ action }) => {
    const run = action.id.run;
    const path = `${base}/domain/${encodeURIComponent(run.domain)}/project/${encodeURIComponent(run.project)}`;
    const link = element("a", { href: `${path}/runs/${encodeURIComponent(run.name)}`, textContent: run.name });
    return element(
      "tr",
      {},
      element("td", {}, link),
      element("td", { textContent: action.metadata?.task?.id?.name ?? action.metadata?.funtionName ?? "" }),
      element("td", { textContent: `${run.project} / ${run.domain}` }),
      phaseCell(action.status),
      element("td", { textContent: when(action.status?.startTime) }),
      element("td", { textContent: seconds(action.status) }),
    );
  });
  return [table(["Run", "Task", "Project / domain", "Phase", "Started", "Took"], rows)];
}

async function showRun(run) {
  const [{ details }, { actions = [], token = "" }] = await Promise.all([
    call("workflow.RunService/GetRunDetails", { runId: run }),
    call("workflow.RunService/ListActions", {
      runId: run,
      request: { limit: 200, sortByFields: [{ key: "created_at", direction: "ASCENDING" }] },
    }),
  ]);
  const rows = actions.map(({ id, metadata, status }) =>
    element(
      "tr",
      {},
      element("td", { textContent: id.name }),
      element("td", {
        textContent: metadata?.task?.shortName ?? metadata?.trace?.name ?? metadata?.condition?.name ?? "",
      }),
      element("td", { textContent: metadata?.parent ?? "" }),
      phaseCell(status),
      element("td", { textContent: status?.attempts ?? 1 }),
      element("td", { textContent: seconds(status) }),
    ),
  );
  const error = details.action?.errorInfo?.message ?? details.action?.abortInfo?.reason;
  return [
    element("h1", { textContent: run.name }),
    error ? element("pre", { textContent: error }) : undefined,
    table(["Action", "Name", "Parent", "Phase", "Attempt", "Took"], rows),
    token ? element("p", { textContent: "The first 200 actions are shown." }) : undefined,
    element("p", {}, "Logs: ", element("code", { textContent: `flyte get logs ${run.name}` })),
  ].filter(Boolean);
}

async function refresh() {
  const path = location.pathname.match(/\/domain\/([^/]+)\/project\/([^/]+)\/runs\/([^/]+)/);
  const [domain, project, name] = (path ?? []).slice(1).map(decodeURIComponent);
  try {
    const shown = path ? await showRun({ project, domain, name }) : await showRuns();
    document.getElementById("main").replaceChildren(...shown);
    document.getElementById("state").textContent = `as of ${new Date().toLocaleTimeString()}`;
  } catch (error) {
    document.getElementById("state").textContent = String(error.message ?? error);
  }
  setTimeout(refresh, REFRESH_MILLISECONDS);
}

document.getElementById("home").href = `${base}/`;
refresh();
