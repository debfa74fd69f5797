// Tasks that work on a table, from Airflow's own REST API: it decides who may see them.

import { ask, exactJson, Problem, root } from "./ui.js";

const api = `${root}api/v2/`;
export const unquoted = (name) => String(name ?? "").replaceAll("`", "");

// Results of table care that are read to find one about a table.
const mostResults = 5;

/** The tasks of all DAGs that match a filter, with their fields, the newest first. */
async function newestTasks(filter) {
  const found = await ask("dags/~/dagRuns/~/taskInstances", { order_by: "-start_date", limit: 100, ...filter }, api);
  return found.task_instances.filter((each) => each.rendered_fields);
}

/** Those that name this table as their target. */
async function tasksOf({ connection, database, table }, filter) {
  return (await newestTasks(filter)).filter(({ rendered_fields: fields }) =>
    fields.catalog_conn_id === connection && unquoted(fields.target) === `${database}.${table}`);
}

/** Those of an operator that have ended well. */
const endedWell = (name) => ({ operator: name, state: "success" });
const isOf = (name) => (task) => task.operator === name || task.operator_name === name;

/** Tasks that run now. */
export function runningTasks(table) {
  return tasksOf(table, { state: "running" });
}

/** The last task that searched for orphan files, with its result; null without one. */
export async function lastOrphanSearch(table) {
  const name = "RemoveOrphanFilesOperator";
  const [found, cared] = await Promise.all([tasksOf(table, endedWell(name)), lastCare(table)]);
  const task = found.find(isOf(name));
  if (!task || (cared && cared.task.start_date > task.start_date)) return cared;
  return { task, result: await resultOf(task) };
}

/** The last care for many tables that removed the orphan files of this one, as that removal's result. */
async function lastCare({ connection, database, table }) {
  const name = "TableCareOperator";
  const tasks = (await newestTasks(endedWell(name))).filter(isOf(name)).filter(({ rendered_fields: fields }) =>
    isIn("remove_orphan_files", fields.actions) && (fields.catalog_conn_id === connection || isIn(connection, fields.more_catalogs)));
  for (const task of tasks.slice(0, mostResults)) {
    const { tables } = await resultOf(task).catch(() => ({}));
    const step = (tables ?? []).find((each) => each.catalog === connection && unquoted(each.table) === `${database}.${table}`
      && each.action === "remove_orphan_files" && ["done", "unchanged"].includes(each.status));
    if (step) return { task, result: { status: step.status, bytes_removed: step.free ?? 0 } };
  }
  return null;
}

/** Whether a rendered field, a list or its text, may have a name. */
function isIn(name, field) {
  return JSON.stringify(field ?? "").includes(name);
}

/** What a task returned. */
export async function resultOf(task) {
  try {
    return await xcomOf(task, "return_value");
  } catch (problem) {
    if (problem.code !== "404") throw problem;
    throw new Problem({
      code: "NO_RESULT",
      message: "The task left no result: it has not ended well, its XComs are off (do_xcom_push=False), or they were deleted.",
      remedy: "The task's log tells what the statement did or would do.",
    });
  }
}

/** Why a dry run failed; null: nothing is told. */
export function dryRunError(task) {
  return xcomOf(task, "merge_dry_run_error").catch(() => null);
}

async function xcomOf({ dag_id, dag_run_id, task_id, map_index }, key) {
  const path = ["dags", dag_id, "dagRuns", dag_run_id, "taskInstances", task_id].map(encodeURIComponent).join("/");
  const entry = await ask(`${path}/xcomEntries/${key}`, { map_index, deserialize: "false", stringify: "false" }, api);
  const found = parsed(entry.value);
  if (found !== null && typeof found === "object") return found;
  // Airflow's API reads only its database: an XCom backend may keep the value somewhere else.
  throw new Problem({
    code: "RESULT_ELSEWHERE",
    message: `The task's result is not in Airflow's database. Its XCom backend left this instead: ${found}`,
    remedy: "Read the result where it is, or in the task's log.",
  });
}

function parsed(value) {
  if (typeof value !== "string") return value;
  try {
    return exactJson(value);
  } catch {
    return value;
  }
}

/** The task itself, with its rendered fields. */
export function taskInstance({ dag_id, dag_run_id, task_id, map_index }) {
  const path = ["dags", dag_id, "dagRuns", dag_run_id, "taskInstances", task_id].map(encodeURIComponent).join("/");
  return ask(Number(map_index) < 0 ? path : `${path}/${encodeURIComponent(map_index)}`, {}, api);
}

/** The address of a task's page in Airflow, relative to its root. */
export function pageOfTask({ dag_id, dag_run_id, task_id, map_index }) {
  const page = `dags/${encodeURIComponent(dag_id)}/runs/${encodeURIComponent(dag_run_id)}/tasks/${encodeURIComponent(task_id)}`;
  return Number(map_index) < 0 ? page : `${page}/mapped/${encodeURIComponent(map_index)}`;
}
