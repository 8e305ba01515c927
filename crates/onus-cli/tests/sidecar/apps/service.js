// The same service as service.py, in JavaScript, without tracing: it copies headers itself.

'use strict';

const grpc = require('@grpc/grpc-js');
const http = require('node:http');
const readline = require('node:readline');

const { CALLEE, CALL, SERVE } = process.env;
const HAND_ON = (process.env.HAND_ON ?? '').split(' ').filter((name) => name !== '');
const TRIES = Number(process.env.TRIES ?? '1');
const TOGETHER = Number(process.env.TOGETHER ?? '1');
const METHOD = '/shop.Any/Call';
const bytes = (message) => message;

const say = (line) => process.stdout.write(`${line}\n`);
const agent = new http.Agent({ keepAlive: true });
let outbound;
let client;
let waiting = [];

/** Ready when as many requests as that have come together. */
function together() {
  return new Promise((go) => {
    waiting.push(go);
    if (waiting.length === TOGETHER) {
      waiting.forEach((go) => go());
      waiting = [];
    }
  });
}

function callHttp(headers) {
  const [host, port] = outbound.split(':');
  return new Promise((done) => {
    const request = http.request(
      { host, port, agent, path: '/rate', headers: { host: CALLEE, ...headers } },
      (answer) => {
        answer.resume();
        answer.on('end', () => done(answer.statusCode < 500));
      },
    );
    request.on('error', () => done(false));
    request.end();
  });
}

function callGrpc(headers) {
  const metadata = new grpc.Metadata();
  Object.entries(headers).forEach(([name, value]) => metadata.set(name, value));
  return new Promise((done) => {
    const message = Buffer.from('17 EUR');
    client.makeUnaryRequest(METHOD, bytes, bytes, message, metadata, (error) => done(error === null));
  });
}

/** Calls the callee for a request with these headers; whether it answered. */
async function call(headers) {
  say('handles');
  if (CALLEE === undefined) {
    return false;
  }
  await together();
  const names = HAND_ON.filter((name) => headers[name] !== undefined);
  const handedOn = Object.fromEntries(names.map((name) => [name, headers[name]]));
  if (CALL === 'grpc') {
    return callGrpc(handedOn);
  }
  for (let tried = 0; tried < TRIES; tried += 1) {
    if (await callHttp(handedOn)) {
      return true;
    }
  }
  return false;
}

function serveHttp(listens) {
  const server = http.createServer(async (request, response) => {
    response.statusCode = (await call(request.headers)) ? 200 : 503;
    response.end();
  });
  server.keepAliveTimeout = 60_000;
  server.listen(0, '127.0.0.1', () => listens(server.address().port));
}

function serveGrpc(listens) {
  const server = new grpc.Server();
  const unary = {
    path: METHOD,
    requestStream: false,
    responseStream: false,
    requestSerialize: bytes,
    requestDeserialize: bytes,
    responseSerialize: bytes,
    responseDeserialize: bytes,
  };
  const handle = async (request, answer) => {
    if (await call(request.metadata.getMap())) {
      answer(null, Buffer.from('ok'));
    } else {
      answer({ code: grpc.status.UNAVAILABLE, details: 'its callee failed' });
    }
  };
  server.addService({ Call: unary }, { Call: handle });
  const credentials = grpc.ServerCredentials.createInsecure();
  server.bindAsync('127.0.0.1:0', credentials, (_error, port) => listens(port));
}

readline.createInterface({ input: process.stdin }).once('line', (line) => {
  outbound = line.trim();
  if (CALLEE !== undefined) {
    const options = { 'grpc.default_authority': CALLEE, 'grpc.enable_http_proxy': 0 };
    if (TRIES > 1) {
      const retryPolicy = {
        maxAttempts: TRIES,
        initialBackoff: '0.01s',
        maxBackoff: '0.02s',
        backoffMultiplier: 1,
        retryableStatusCodes: ['UNAVAILABLE'],
      };
      const config = { methodConfig: [{ name: [{}], retryPolicy }] };
      Object.assign(options, {
        'grpc.enable_retries': 1,
        'grpc.service_config': JSON.stringify(config),
      });
    }
    client = new grpc.Client(outbound, grpc.credentials.createInsecure(), options);
  }
  say('ready');
});

(SERVE === 'grpc' ? serveGrpc : serveHttp)((port) => say(port));
