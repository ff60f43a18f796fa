// Shows the OpenAPI document of this daemon. Everything is inserted as text, never as markup.
'use strict';

function make(tag, text, ...children) {
  const element = document.createElement(tag);
  if (text) element.textContent = text;
  element.append(...children);
  return element;
}

function classed(name, element) {
  element.className = name;
  return element;
}

// Follows a reference within the document.
function resolve(api, value) {
  let found = value;
  while (found && found.$ref) {
    found = found.$ref.slice(2).split('/').reduce(
      (at, part) => at[decodeURIComponent(part).replace(/~1/g, '/').replace(/~0/g, '~')], api);
  }
  return found;
}

// The type of a schema, in one line.
function kind(schema) {
  if (!schema || schema === true) return 'anything';
  if (schema.$ref) return schema.$ref.split('/').pop();
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(' | ');
  if ('const' in schema) return JSON.stringify(schema.const);
  if (schema.anyOf || schema.oneOf) return (schema.anyOf || schema.oneOf).map(kind).join(' | ');
  if (schema.type === 'array') return `list of ${kind(schema.items)}`;
  return [].concat(schema.type || 'anything').join(' | ');
}

function table(head, rows) {
  const line = (cell, values) => make('tr', '', ...values.map(
    (value) => value instanceof Node ? make(cell, '', value) : make(cell, value)));
  return make('table', '', line('th', head), ...rows.map((row) => line('td', row)));
}

function fields(api, schema) {
  const found = resolve(api, schema);
  const properties = Object.entries((found && found.properties) || {});
  if (!properties.length) return make('p', kind(schema));
  const required = found.required || [];
  return table(['field', 'kind', ''], properties.map(([name, field]) => [
    make('code', required.includes(name) ? name : `${name}?`), kind(field),
    (field && field.description) || '',
  ]));
}

function contents(api, content) {
  return Object.entries(content || {}).flatMap(([type, { schema }]) => [
    make('p', '', make('code', type), ` ${(schema && schema.description) || ''}`),
    ...(type === 'application/json' ? [fields(api, schema)] : []),
  ]);
}

function answers(api, responses) {
  const entries = Object.entries(responses).map(([status, value]) => [status, resolve(api, value)]);
  const good = entries.filter(([status]) => status < 400);
  const bad = entries.filter(([status]) => status >= 400);
  return [
    ...good.flatMap(([status, response]) => [
      make('h4', `${status} ${response.description}`), ...contents(api, response.content),
    ]),
    make('h4', 'Errors'),
    table(['status', 'meaning'], bad.map(([status, response]) => [status, response.description])),
  ];
}

function operation(api, path, method, described) {
  const summary = make('summary', '',
    classed('method', make('span', method.toUpperCase())), make('span', path),
    classed('about', make('span', described.summary)));
  const parameters = (described.parameters || []).map((parameter) => [
    make('code', parameter.required ? parameter.name : `${parameter.name}?`), parameter.in,
    kind(parameter.schema), parameter.description || '',
  ]);
  const needsToken = described.security.length ? 'Needs a token.' : 'Needs no token.';
  return make('details', '', summary, make('p', needsToken),
    ...(parameters.length ? [make('h4', 'Parameters'), table(['name', 'in', 'kind', ''], parameters)] : []),
    ...(described.requestBody ? [make('h4', 'Body'), ...contents(api, described.requestBody.content)] : []),
    ...answers(api, described.responses));
}

function schemas(api) {
  return Object.entries(api.components.schemas).map(([name, schema]) => make('details', '',
    make('summary', name), make('p', schema.description || ''),
    make('pre', JSON.stringify(schema, null, 2))));
}

function show(api) {
  document.getElementById('about').textContent = api.info.description;
  const byTag = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, described] of Object.entries(methods)) {
      const tag = described.tags[0];
      if (!byTag.has(tag)) byTag.set(tag, []);
      byTag.get(tag).push(operation(api, path, method, described));
    }
  }
  const routes = document.getElementById('routes');
  for (const [tag, operations] of byTag) routes.append(make('h2', tag), ...operations);
  routes.append(make('h2', 'schemas'), ...schemas(api));
}

fetch('/v1/openapi.json')
  .then((answer) => answer.json())
  .then(show)
  .catch((error) => {
    document.getElementById('about').textContent = `Cannot read the document: ${error}`;
  });
