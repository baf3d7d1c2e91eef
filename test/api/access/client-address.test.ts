import { expect } from 'chai';
import { clientAddress, isBehindTls } from '../../../src/api/access/request-source.js';
import { addressIn, addressList, isAddressOrRange } from '../../../src/system/addresses.js';

describe('The address of a client', () => {
  const trusted = addressList(['10.0.0.0/8', '192.168.1.7', 'fd00::/8']);
  const from = (remoteAddress: string, forwarded?: string): string =>
    clientAddress({ socket: { remoteAddress }, headers: { 'x-forwarded-for': forwarded } }, trusted);

  it('is the address of the connection, unless a trusted proxy forwards another', () => {
    expect(from('203.0.113.9')).to.equal('203.0.113.9');
    expect(from('203.0.113.9', '198.51.100.1')).to.equal('203.0.113.9');
    expect(from('192.168.1.8', '198.51.100.1')).to.equal('192.168.1.8');
  });

  it('is the last forwarded address that is not a trusted proxy, because the client may have forged earlier ones', () => {
    expect(from('10.0.0.1', '198.51.100.1')).to.equal('198.51.100.1');
    expect(from('10.0.0.1', '1.1.1.1, 198.51.100.1, 10.2.3.4')).to.equal('198.51.100.1');
    expect(from('fd00::1', '2001:db8::5')).to.equal('2001:db8::5');
    expect(from('10.0.0.1', '10.0.0.2, 10.0.0.3')).to.equal('10.0.0.2');
  });

  it('is normalised, with a port, in brackets or mapped to IPv6', () => {
    expect(from('::ffff:10.0.0.1', '198.51.100.1:4711')).to.equal('198.51.100.1');
    expect(from('10.0.0.1', '[2001:DB8::5]:4711')).to.equal('2001:db8::5');
    expect(addressIn('::ffff:1.2.3.4')).to.equal('1.2.3.4');
    expect(addressIn('example.org')).to.equal(null);
  });

  it('is the last valid one if the header is malformed', () => {
    expect(from('10.0.0.1', '198.51.100.1, nonsense')).to.equal('10.0.0.1');
    expect(from('10.0.0.1', '')).to.equal('10.0.0.1');
  });

  it('is behind TLS if a trusted proxy says so', () => {
    const isSecure = (remoteAddress: string, scheme?: string): boolean =>
      isBehindTls({ socket: { remoteAddress }, headers: { 'x-forwarded-proto': scheme } }, trusted);
    expect(isSecure('10.0.0.1', 'https')).to.equal(true);
    expect(isSecure('10.0.0.1', 'http')).to.equal(false);
    expect(isSecure('10.0.0.1')).to.equal(false);
    expect(isSecure('203.0.113.9', 'https')).to.equal(false);
  });

  it('may be listed as an address or a range', () => {
    for (const text of ['10.0.0.1', '10.0.0.0/8', '::1', 'fd00::/8']) expect(isAddressOrRange(text), text).to.be.true;
    for (const text of ['', 'proxy', '10.0.0.0/33', '10.0.0.0/', '::1/129', '10.0.0.1:80', '1.2.3']) {
      expect(isAddressOrRange(text), text).to.be.false;
    }
  });
});
