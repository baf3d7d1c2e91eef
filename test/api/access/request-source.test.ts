import { expect } from 'chai';
import { ownHosts } from '../../../src/api/access/request-source.js';

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]'];

describe('The accepted Hosts of a service', () => {
  for (const { host, address, allowedHosts = [], own, foreign } of [
    {
      host: '127.0.0.1',
      address: '127.0.0.1',
      own: [...LOOPBACK, '127.0.0.1:8000', 'LocalHost.:1', 'app.localhost', '127.9.9.9', '[::1]:80', '[0:0::1]', '::1'],
      foreign: [
        ...['evil.example', 'localhost.evil.example', '127.0.0.1.evil.example', 'evil@localhost', 'localhost@evil'],
        ...['notlocalhost', '0.0.0.0', '128.0.0.1', '[::2]', '[::1', 'localhost:x', 'localhost:99999', 'a b', ''],
        ...['localhost/', 'localhost#', 'localhost?', 'localhost\\', 'localhost,evil.example', '\u0000', '.'],
      ],
    },
    { host: 'localhost', address: '::1', own: LOOPBACK, foreign: ['council.example'] },
    { host: 'box', address: '127.0.1.1', own: [...LOOPBACK, 'box', 'BOX:8000'], foreign: ['box.example'] },
    { host: '::ffff:127.0.0.1', address: '::ffff:127.0.0.1', own: LOOPBACK, foreign: ['council.example'] },
    { host: '0.0.0.0', address: '0.0.0.0', own: [...LOOPBACK, 'council.example', '10.0.0.5:8000', ''], foreign: [] },
    {
      host: '0.0.0.0',
      address: '0.0.0.0',
      allowedHosts: ['council.example', '[fe80::1]'],
      own: [...LOOPBACK, 'Council.Example', 'council.example.:443', '[FE80::1]:8000', '0.0.0.0'],
      foreign: ['evil.example', 'www.council.example', '10.0.0.5'],
    },
    {
      host: '127.0.0.1',
      address: '127.0.0.1',
      allowedHosts: ['council.example'],
      own: [...LOOPBACK, 'council.example'],
      foreign: ['evil.example'],
    },
    {
      host: 'council.example',
      address: '10.0.0.5',
      allowedHosts: ['other.example'],
      own: [...LOOPBACK, 'other.example', 'council.example', '10.0.0.5'],
      foreign: ['evil.example'],
    },
  ]) {
    it(`are correct when it listens on ${host} (${address}) and ALLOWED_HOSTS is: ${allowedHosts.join(' ') || 'empty'}`, () => {
      const isOwnHost = ownHosts({ host, address, allowedHosts });
      expect(own.filter((name) => !isOwnHost(name))).to.deep.equal([]);
      expect(foreign.filter((name) => isOwnHost(name))).to.deep.equal([]);
    });
  }
});
