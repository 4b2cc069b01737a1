package mediatype

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gabriel-vasile/mimetype"
)

// judge compares what quick says of head with what the library does, and
// reports whether quick said anything.
func judge(t testing.TB, what string, head []byte) bool {
	t.Helper()
	head = head[:min(len(head), HeadSize)]
	if len(head) == 0 {
		return false
	}
	got := quick(head)
	if got == "" {
		return false
	}
	if want := bare(mimetype.Detect(head).String()); got != want {
		t.Errorf("%s: quick = %s, the library says %s, of %d bytes %.200q", what, got, want, len(head), head)
	}
	return true
}

// The answers rest on every detector of this version having been read.
func TestLibraryIsTheOneThatWasRead(t *testing.T) {
	const known = "github.com/gabriel-vasile/mimetype v1.4.16"
	mod, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(mod, []byte("\t"+known+"\n")) {
		t.Fatalf("go.mod has no %s: read which detectors changed, bring starts, embedded, text and signatures of this "+
			"test up to them, run FuzzQuick for some minutes, then name the new version here", known)
	}
}

// signatures are what the library's detectors look for, and near misses, by the
// offset at which they look.
var signatures = map[int][]string{
	0: {
		"7z\xbc\xaf'\x1c", "\x1f\x8b\b\x00", "SIMPLE  =                    T", "xar!", "BZh9", "!<arch>\n",
		"!<arch>\ndebian-binary", "WARC/1.0", "WARC/1.1\r\n", "MSCF\x00\x00\x00\x00", "\xfd7zXZ\x00", "LZIP\x01",
		"\xed\xab\xee\xdb", "drpm", "Rar!\x1a\a\x00", "Rar!\x1a\a\x01\x00", "ISc(\x00\x00\x00\x01", "\x28\xb5/\xfd",
		"\"\xb5/\xfd", "\x29\xb5/\xfd", "#\xb5/\xfd", "$\xb5/\xfd", "%\xb5/\xfd", "&\xb5/\xfd", "'\xb5/\xfd",
		"P*M\x18", "Q*M\x18", "R*M\x18", "S*M\x18", "T*M\x18", "U*M\x18", "V*M\x18", "W*M\x18", "X*M\x18", "Y*M\x18",
		"Z*M\x18", "[*M\x18", "\\*M\x18", "]*M\x18", "^*M\x18", "_*M\x18", "O*M\x18",
		"Cr24\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00PK\x03\x04", "\xc7\x71\x00\x00\x00\x00", "\xc7q text",
		"070707", "070701", "070702", "070703", "x\x9c", "x\x01", "x\xda", "x ", "fLaC\x00\x00\x00\x22", "MThd",
		"MAC \x96\x0f\x00\x004\x00\x00\x00\x18\x00\x00\x00\x90\xe3", "MPCK", ".snd", "#!AMR", "#!AMR\n",
		"Creative Voice File", "#EXTM3U\n", "#EXTM3U\r\n", "#EXTM3U8", "\xff\xf1", "\xff\xf9",
		"ID3\x03\x00\x00\x00\x00\x00\x01", "\xff\xfb\x90\x64", "\xff\xf3\x44\xc4", "MO3",
		"\x00\x00\x01\x40\x00\x00\x00\x03\x00\x00", "RIFF\x24\x00\x00\x00WAVEfmt ", "RIFFsizeWEBPVP8",
		"RIFFsizeQLCMfmt", "RIFFsizeAVI LIST", "FORMsizeAIFFx", "\x00asm", "L\x00\x00\x00\x01\x14\x02\x00", "MZ",
		"MZ is no program", "\x7fELF", "\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x03\x00",
		"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02",
		"\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x00",
		"\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x04\x00",
		"\x7fELF\x01\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x01\x01", "NES\x1a", "CWS", "FWS", "ZWS",
		"d8:announce", "PAR1", "\xd9\xd9\xf7", "\xca\xfe\xba\xbe\x00\x00\x00\x34",
		"\xca\xfe\xba\xbe\x00\x00\x00\x02", "\xca\xfe\xba\xbetext", "\xca\xfe\xba\xbe\n\n\n\n", "\xfe\xed\xfa\xce",
		"\xce\xfa\xed\xfe", "\xfe\xed\xfa\xcf", "\xcf\xfa\xed\xfe", "glTF\x02\x00\x00\x00",
		"TZif2" + strings.Repeat("\x00", 34) + "\x01" + strings.Repeat("\x00", 8),
		"TZif2 and then more than forty-four bytes of a text", "TZif4" + strings.Repeat("\x01", 50),
		"TZif" + strings.Repeat("\x00", 50), "\x61\r\r\n\x00\x00\x00\x00", "\xcb\r\r\n\x03\x00\x00\x00",
		"\xcb\r\r\n\x04\x00\x00\x00", "+\x0e\r\n\x00\x00\x00\x00", "\x02\t\x99\x00text", "\x03\t\x99\x00text",
		"\x03\x18\x0c\x1f" + strings.Repeat("\x00", 64),
		"\x30\x18\x01\x01abcdefgh\x00\x00" + strings.Repeat("a", 14) + "\x01a\x00\x00" + strings.Repeat("a", 40),
		"\x03\xf3\r\nabcd", "*\xeb\r\nabcd", "\x89.\r\nabcd", "\t\f\r\nabcd", " \r\r\nabcd", "/*\r\nabcd",
		"\xf0\x00\r\n\x00\x00\x00\x00", "\xa1\xb2\xc3\xd4", "\xa1\xb2<M", "\xd4\xc3\xb2\xa1", "M<\xb2\xa1",
		"SQLite format 3\x00", "8BPS", "%!PS-Adobe-3.0", "%PDF-1.4", "\n%PDF-1.4", "%FDF-1.2", "-----BEGIN PKCS7",
		"-----BEGIN PKCS7-----", "0\x80\x06\t*\x86H\x86\xf7\r\x01\aabcdefghij",
		"0\x81\x80\x06\t*\x86H\x86\xf7\r\x01\aabcdefghij", "0\x82\x01\x02\x06\t*\x86H\x86\xf7\r\x01\aabcdefghij",
		"0\x82\x03\x9a0\x82\x02\x82\xa0", "0\x83\x01\x02\x03\x06\t*\x86H\x86\xf7\r\x01\aabcdefghij",
		"0\x84\x01\x02\x03\x04\x06\t*\x86H\x86\xf7\r\x01\aabcde", "OggS\x00",
		"OggS\x00" + strings.Repeat("\x01", 23) + "\x01vorbis123", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
		"\x89PNG\r\n\x1a\n", "\x89PNG\r\n\x1a\n\x00\x00\x00\x00IHDR0000\x00\x00\x00\bacTL",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\x04IHDRacTL0000\x00\x00\x00\bIDATacTL",
		"\x89PNG\r\n\x1a\n\xff\xff\xff\xfcIHDR\x00\x00\x00\bacTL",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\x00IHDR0000\x00\x00",
		"\x89PNG\r\n\x1a\n\x00\x00\x00\x00IHDR0000\x00\x00\x00\x00acT", "\xff\xd8\xff\xe0", "\xff\x0a",
		"\x00\x00\x00\fJXL \r\n\x87\n", "\x00\x00\x00\fJXS \r\n\x87\n", "GIF87a", "GIF89a", "GIF88a", "BM",
		"BM0123456789ab(\x00\x00\x00", "\x00\x00\x01\x00", "\x00\x00\x02\x00\x06\x04\x06\x00", "\x00\x00\x1a\x00",
		"icns", "II*\x00", "MM\x00*", "BPG\xfb", "gimp xcf", "#?RADIANCE\n", "/* XPM */", "II\xbc\x01", "AC1032",
		"AC1.40", "AC2.10", "  0\nSECTION\n", "  0\r\nSECTION\r\n", "0\nSECTION\n", "0\r\nSECTION\r\n",
		"\x00\x01\x00\x00\x00\x11\x01\x00\x00\x04\x00\x10cmap", "wOFF", "wOF2",
		"OTTO\x00\x0a\x00\x80\x00\x03\x00\x20CFF ", "ttcf\x00\x01\x00\x00", "\x00\x00\x27\x0a", "AT&TFORMsizeDJVM",
		"ITOLITLS", "ITSF\x03\x00\x00\x00\x60\x00\x00\x00", "HSP\x01\x9b\x00", "HSP\x10\x9b\x00", "<MakerFile \x00",
		"<MakerDictionary \x00", "<bookfile \x00", "<BOOKFILE>", "\xffWPC1234\x01\x0a", "GRIB123\x02", "BUFR123\x04",
		"\x00\x00\x01\xba", "\x00\x00\x00\x14ftypisom", "1234ftypqt  ", "\x00\x00\x00\bwide", "1234moov\x00",
		"1234free\x00", "1234free text", "\x1aE\xdf\xa3\x01\x42\x82\x84webm", "FLV\x01",
		"0&\xb2u\x8ef\xcf\x11\xa6\xd9\x00\xaa\x00b\xcel", ".RMF", "PK\x03\x04", "PK\x05\x06",
		"\xe4R\\{\x8c\xd8\xa7M\xae\xb1Sx\xd0)\x96\xd3", "00042nam a2200013 i 4500\x1e",
		"00042nam a2200013 i 4500 text", "\xef\xbb\xbf", "\xef\xbb\xbfWEBVTT", "\xef\xbb\xbf<html>",
		"\xef\xbb\xbf0 HEAD\n1 GEDC\n", "\xfe\xff", "\xff\xfe", "\xff\xfe\x00\x00", "\x00\x00\xfe\xff",
		"<svg xmlns=\"http://www.w3.org/2000/svg\">", "<svg>", " \n<svg xmlns='http://www.w3.org/2000/svg' >",
		"<!-- a --><svg xmlns=\"http://www.w3.org/2000/svg\">", "<!--><svg xmlns=\"http://www.w3.org/2000/svg\">",
		"<!-- a -->\n<svg xmlns=\"http://www.w3.org/2000/svg\">", "<!-- no end", "<!--x-->", "<!-->",
		"<?xml version=\"1.0\"?><svg>", "<?XML version=\"1.0\"?><svg>", "<?xml version=\"1.0\"?>", "<?xml?>",
		"<?xml\n", "\f <?xml version=\"1.0\"?><a>", "<?xml version=\"1.0\"?><rss>", "<?xml version=\"1.0\"?><amf>",
		"<?xml version=\"1.0\"?><feed xmlns=\"http://www.w3.org/2005/Atom\">",
		"<?xml version=\"1.0\"?><X3D xmlns:xsd=\"http://www.w3.org/2001/XMLSchema-instance\">",
		"<?xml version=\"1.0\"?><kml xmlns=\"http://www.opengis.net/kml/2.2\">",
		"<?xml version=\"1.0\"?><xliff xmlns=\"urn:oasis:names:tc:xliff:document:1.2\">",
		"<?xml version=\"1.0\"?><COLLADA xmlns=\"http://www.collada.org/2005/11/COLLADASchema\">",
		"<?xml version=\"1.0\"?><a xmlns:gml=\"http://www.opengis.net/gml/3.2\">",
		"<?xml version=\"1.0\"?><gpx xmlns=\"http://www.topografix.com/GPX/1/1\">",
		"<?xml version=\"1.0\"?><TrainingCenterDatabase xmlns=\"http://www.garmin.com/xmlschemas/TrainingCenterDatabase/v2\">",
		"<?xml version=\"1.0\"?><model xmlns=\"http://schemas.microsoft.com/3dmanufacturing/core/2015/02\">",
		"<?xml version=\"1.0\"?><xfdf xmlns=\"http://ns.adobe.com/xfdf/\">",
		"<?xml version=\"1.0\"?><Ontology xmlns=\"http://www.w3.org/2002/07/owl#\">",
		"<?xml version=\"1.0\"?><!DOCTYPE  \n html PUBLIC>", "<?xml version=\"1.0\"?><!DOCTYPE plist>",
		"<?xml version=\"1.0\"?><HTML \n XMLNS=\"x\">",
		"<?xml version=\"1.0\"?><bom xmlns=\"http://cyclonedx.org/schema/bom/1.5\">", "<!DOCTYPE html>",
		"<!doctype HTML ", "<!DOCTYPE  html>", "<!DOCTYPE htmlx>", "<!DOCTYPE math>", "<html>", "<HEAD\n",
		"<script ", "<iframe>", "<h1>", "<h2>", "<div\t", "<font\f", "<table\r", "<a href", "<abbr>", "<style>",
		"<title>", "<b>", "<body>", "<br>", "<br/>", "<p>", "<pre>", "<!-- x -->", "<>", "< ", "<d\u0130v>",
		"<?php\n", "<?PHP echo", "<?php", "<?php5", "<?\n", "<? ", "<?=", "\n<?php\n", "<%", "#!/usr/bin/php\n",
		"#!/usr/bin/env php\n", "#!/usr/bin/env -S php\n", "#!/bin/sh\n", "#!/bin/sh -e\n", "#!/bin/sha\n",
		"#!/bin/ash\n", "#! /bin/bash\r\n", "#!/usr/bin/bash\n", "#!/usr/local/bin/bash\n", "#!/usr/bin/env  bash\n",
		"#!/usr/bin/env\tzsh -f\n", "#!/usr/bin/env -S bash\n", "#!/usr/bin/env bashful\n", "#!/bin/csh\n",
		"#!/bin/tcsh\n", "#!/bin/ksh\n", "#!/bin/dash\n", "#!/bin/zsh\n", "#!/bin/sh", "#!/usr/bin/env node\n",
		"#!/usr/bin/node\n", "#!/usr/bin/nodejs\n", "#!/bin/node\n", "#!/usr/bin/env deno\n", "#!/usr/bin/lua\n",
		"#!/usr/bin/env lua\n", "#!/usr/bin/perl -w\n", "#!/usr/bin/perl5\n", "#!/usr/bin/env perl\n",
		"#!/usr/bin/python\n", "#!/usr/bin/python3.11 -s\n", "#!/usr/bin/env python3\n", "#!/usr/bin/ruby\n",
		"#!/usr/bin/env ruby\n", "#!/usr/bin/tclsh\n", "#!/usr/bin/env wish\n", "#!/usr/bin/make -f\n",
		"#!/usr/bin/env\n", "#!", "#!\n/bin/sh\n", "#!/bin/sh\fx\n", "{\"a\": 1}", "[1, 2]",
		"{\"type\": \"Feature\"}", "{\"type\": \"module\"}", "{\"a\":{\"type\":\"Point\"}}",
		"{\"log\": {\"version\": 1}}", "{\"asset\": {\"version\": \"2.0\"}}", "{\"bomFormat\": \"CycloneDX\"}",
		"{}\n{}\n", "[1]\n[2]\n", "{\n}\n", "{\n  // a\n}\n", "[Unit]\nA=b\n", "[network]\n", "[tr\n", "[true]\n",
		"[]\n", "{{template}}\n", "{}\ntr\n", "{}\ntr", "{}\r\ntr\r\n", "{}\ntr\r", "{}\nt\r\r", "-1\n{}\n",
		".5\n[]\n", "-\n[]\n", "{}\n-", "{\"type\": \"FeatureCollection\"}", "{\"type\":\"Point\"}",
		"{\"type\":\"LineString\"}", "{\"type\":\"Polygon\"}", "{\"type\":\"MultiPoint\"}",
		"{\"type\":\"MultiLineString\"}", "{\"type\":\"MultiPolygon\"}", "{\"type\":\"GeometryCollection\" }",
		"{\"type\":[\"Point\"]}", "\"use strict\";\n", "\"a\"\n{}\n", "1\n{}\n", "true\n{}\n", "tru\n{}\n",
		"1,2\n{}\n", "\n\n{}\n{}\n", " \n{}\n", "\r\n{}\r\n[]\r\n", "[\",a\"", "{\"a\":\",", "[\"]", "[1,]",
		"{\"a\":01}", "[\f1]", "[\"\\x\"]", "{\\rtf1\\ansi", "1\n00:02:16,612 --> 00:02:19,376\nwords\n",
		"1\r\n00:02:16,612 --> 00:02:19,376\r\nwords\r\n", "a,b\n1,2\n", "a,b\n1,2", "a,b\n1,2,3\n", "a\tb\n1\t2\n",
		"\t\n\t\n", ",\n,\n", "\"a\",\"b\"\n\"1\n2\",3\n", "\"a\"\"b\",c\n1,2\n", "\"a\"b,c\n1,2\n",
		"\"a\"\",b\",c\n1,2\n", "# x\na,b\n\n# y\n1,2\n", "a,b\r\n1,2\r\n", "a,\"b\r\n\r\nc\"\r\n1,2\r\n",
		"a,b\r1,2\r", "\"", "a,\"", "a,\"\r\n", "a,b\n\"", "BEGIN:VCARD\n", "begin:vcard\r\n", "BEGIN:VCARD",
		"BEGIN:VCALENDAR\r\n", "Begin:vCalendar\n", "WEBVTT\n", "WEBVTT", "WEBVTT\t", "WEBVTTX", "P1\n1 1\n",
		"P4\n# x\n2 2\n", "P2\n1 1\n", "P5\n1 1\n", "P3\n1 1\n", "P6\n1 1\n",
		"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 1\nENDHDR\n", "Message-ID: a\nTo: b\n", "message-iD: a\nTo: b\n",
		"From: a\nTo: b\n", "To: a\nCC: b\n", "CC: a\nTo: b\n", "cC: a\nTo: b\n", "Format: a\nTo: b\n",
		"Date: a\nTo: b\n", "Subject: a\nTo: b\n", "Received: a\nTo: b\n", "Relay-Version: a\nTo: b\n",
		"#! rnews\nTo: b\n", "N#! rnews\nTo: b\n", "Forward to\nTo: b\n", "Pipe to\nTo: b\n",
		"dELIVERED-TO: a\nTo: b\n", "DELIVERED-TO: a\nTo: b\n", "return-path: a\nTo: b\n", "Return-Path: a\nTo: b\n",
		"Content-Type: a\nTo: b\n", "Content-Transfer-Encoding: a\nTo: b\n", "0 HEAD\n1 GEDC\n",
		" \n0 HEAD\r\n1 GEDC\r\n", "0 HEADER\n1 GEDC\n",
	},
	4: {
		"jP  \r\n\x87\n\x00\x00\x00\x14ftypjp2 ", "jP  abcdefghijkljp2 ", "jP2 abcdefghijkljpx ",
		"jP  abcdefghijkljpm ", "Standard Jet DB", "Standard ACE DB", "moov\x00", "skip\x00", "pnot\x00", "mdat\x00",
		"ftyp",
	},
	8: {
		"\x02\x00\x01" + strings.Repeat("x", 23) + "LP", "\x01\x00\x00" + strings.Repeat("\x00", 23) + "LP",
		"\x02\x00\x01", "debian-binary",
	},
	20: {"GPAT", "GIMP", "4500"},
	34: {"LP"},
	60: {"BOOKMOBI"},
	100: {
		"%PDF-1.4", "\xff\xfb\x90\x64", "\xff", "\x00", "\x0b", "\x0e", "\x1b", "\x1f", "\f", "\x7f", "\x80", "acTL",
	},
	128:  {"DICM"},
	148:  {"0012345\x00", "    777 ", "12345678", "\x0012\x00abcd"},
	1019: {"%PDF-"},
	1020: {"%PDF-"},
	4095: {"\x00", "\xff", ",", "\t", "\"", "\n"},
}

// bodies are what the signatures are put into.
func bodies() []string {
	row := strings.Repeat("1,2,3\n", 800)
	frames := strings.Repeat("\xff\xfb\x90\x64"+strings.Repeat("a", 413), 9)
	binary := make([]byte, HeadSize+50)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range binary {
		binary[i] = byte(r.Uint32())
	}
	object := `{"name": "a", "list": [1, -2.5e+3, true, null, "\u00e9\n"], "type": "module", "deep": {"x": {}, "y": []}}`
	array := "[" + strings.Repeat(object+",\n", 60)
	texts := []string{
		"", "\n", "x", "words of a text\n", row[:4095], row[:4096], "x\n" + row, frames, string(binary), object,
		array, array[:4095], array[:4094] + `",`, array + "1]",
	}
	for _, part := range []string{
		"some words, of a plain text\n", "\twords\tin columns\n", "caf\xe9 \xff au lait\n", "naïve 日本語\r\n", "a", "\x00",
		object + "\n", "{\n \"k\": \"v\",\n", "[", "<tag>\n", "<rss>\n", "<svg>\n", "\"quoted\",\"fields\"\n",
		"\"open\nquote,\n", "# comment, here\n", "\x00\x01\x02abc\xff\xfb", "esc \x1b[0m\n", "form\ffeed\n",
	} {
		texts = append(texts, strings.Repeat(part, HeadSize/len(part)+10))
	}
	return texts
}

func TestQuickIsTheLibraryOnSignatures(t *testing.T) {
	texts := bodies()
	for offset, signs := range signatures {
		for _, sign := range signs {
			for n, body := range texts {
				what := fmt.Sprintf("%.40q at %d of body %d", sign, offset, n)
				judge(t, what+", put before", []byte(body[:min(offset, len(body))]+sign+body[min(offset, len(body)):]))
				if over := []byte(body); len(over) > offset {
					copy(over[offset:], sign)
					judge(t, what+", put over", over)
					for _, size := range []int{len(sign), 24, 132, HeadSize - 1} {
						if len(over) > size {
							judge(t, what+", cut", over[:size])
						}
					}
				}
			}
			for cut := 1; cut <= len(sign); cut++ {
				judge(t, "start of a signature", []byte(sign[:cut]))
				judge(t, "start of a signature and text", []byte(sign[:cut]+"words\n"))
				judge(t, "in capitals", []byte(strings.ToUpper(sign[:cut])+"\n"))
				judge(t, "after spaces", []byte(" \n\t\f\r"+sign[:cut]+"\nwords\n"))
			}
		}
	}
}

// A tar file has its mark in a sum.
func TestQuickIsTheLibraryOnTar(t *testing.T) {
	block := []byte(strings.Repeat("words of a text ", 40))
	for sum := range 1 << 16 {
		copy(block[148:], fmt.Sprintf("%07o ", sum))
		if quick(block) != "" && mimetype.Detect(block).Is("application/x-tar") {
			t.Fatalf("quick says %s of a tar file", quick(block))
		}
	}
}

// Every head of one or two bytes, and of three that begin a format.
func TestQuickIsTheLibraryOnShortHeads(t *testing.T) {
	for a := range 256 {
		judge(t, "a byte", []byte{byte(a)})
		for b := range 256 {
			head := []byte{byte(a), byte(b)}
			judge(t, "two bytes", head)
			judge(t, "two bytes before words", append(head, "ords of a text\n"...))
			judge(t, "two bytes before octets", append(head, "\x01\x00\x10 octets\x00"...))
		}
	}
}

func TestQuickIsTheLibraryOnMutations(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	texts := bodies()
	var signs []string
	for _, s := range signatures {
		signs = append(signs, s...)
	}
	const letters = "\x00\b\t\n\v\f\r\x0e\x1b \"#',-.0129:<>=AEZ[\\]aeftnuz{}\x7f\x80\xe2\xff"
	for range 15_000 {
		head := []byte(texts[r.IntN(len(texts))])
		if r.IntN(3) == 0 {
			head = head[:r.IntN(len(head)+1)]
		}
		if r.IntN(2) == 0 {
			head = append([]byte(signs[r.IntN(len(signs))]), head...)
		}
		for range r.IntN(4) {
			if len(head) == 0 {
				break
			}
			at := r.IntN(len(head))
			if r.IntN(2) == 0 {
				at = r.IntN(min(len(head), 200))
			}
			switch r.IntN(3) {
			case 0:
				head[at] = letters[r.IntN(len(letters))]
			case 1:
				head = append(head[:at], head[at+1:]...)
			case 2:
				head = append(head[:at:at], append([]byte(signs[r.IntN(len(signs))]), head[at:]...)...)
			}
		}
		judge(t, "mutation", head)
		if t.Failed() {
			return
		}
	}
}

// Short texts of few characters find what is special about JSON, tables and
// tags, whole as well as cut off at the end of the head.
func TestQuickIsTheLibraryOnGrammars(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, parts := range [][]string{
		{"{", "}", "[", "]", ",", ":", `"`, `"a"`, `"type":`, `"Point"`, "\\", `\u00e`, "true", "tr", "null", "1", "-", ".", "e", " ", "\n", "\r"},
		{`"`, ",", "\t", "\n", "\r\n", "\r", "#", "a", " ", `"a"`, "a,b\n", "\n\n"},
		{"<", ">", "!", "--", "<!--", "-->", "<svg", "<?xml", "<?php", " ", "\n", "html", "!DOCTYPE", "<p", "a", "version=\"1.0\"", "<rss"},
	} {
		for range 10_000 {
			var text []byte
			for range 1 + r.IntN(12) {
				text = append(text, parts[r.IntN(len(parts))]...)
			}
			judge(t, "grammar", text)
			switch r.IntN(64) {
			case 0, 1, 2, 3:
				judge(t, "grammar, cut off", append(bytes.Repeat([]byte{' '}, HeadSize-len(text)), text...))
			case 4:
				judge(t, "grammar, cut off", append(bytes.Repeat([]byte("[\n"), HeadSize/2), text...)[len(text):])
			}
			if t.Failed() {
				return
			}
		}
	}
}

// On real files quick is right, and knows nearly all of them.
func TestQuickIsTheLibraryOnFiles(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, HeadSize)
	files, known := 0, 0
	err = filepath.WalkDir(strings.TrimSpace(string(root)), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		n, err := f.ReadAt(buf, 0)
		if err != nil && err != io.EOF || n == 0 {
			return nil
		}
		files++
		if judge(t, path, buf[:n]) {
			known++
		}
		for _, size := range []int{100, 512, n / 2, n - 1} {
			judge(t, path, buf[:min(n, size)])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d of %d files", known, files)
	if files < 5000 || known*100 < files*97 {
		t.Errorf("quick knows %d of %d files, want 97 %% of more than 5,000", known, files)
	}
}

func TestControlBytes(t *testing.T) {
	for c := range 256 {
		text := c >= ' ' || c >= '\t' && c <= '\r' && c != 0x0b || c == 0x1b
		for _, size := range []int{1, 31, 32, 33, 64, 600, HeadSize} {
			head := bytes.Repeat([]byte{'\xff'}, size)
			for _, at := range []int{0, size / 2, size - 1} {
				head[at] = byte(c)
				if isText(head) != text {
					t.Errorf("isText with %#x at %d of %d = %t", c, at, size, !text)
				}
				head[at] = 'a'
			}
		}
		for at := range 8 {
			for _, beside := range []uint64{0, 0xff * ones, 'a' * ones, 0x7f * ones, 0x80 * ones} {
				good := noControl(beside&^(0xff<<(8*at)) | uint64(c)<<(8*at))
				if want := c >= ' ' || c >= '\t' && c <= '\r'; good>>(8*at+7)&1 == 1 != want {
					t.Errorf("noControl of %#x at %d beside %x = %t", c, at, beside, !want)
				}
			}
		}
	}
}

// What IsText does not look up is what the library would say, where it knows it.
func TestIsTextIsTheLibrary(t *testing.T) {
	for _, mime := range []string{
		"application/json", "application/x-ndjson", "image/svg+xml", "application/yaml", "application/x-yaml",
		"application/toml", "application/sql", "application/graphql", "application/ecmascript",
		"application/typescript", "application/x-httpd-php", "application/jsonc", "application/json5",
		"application/jsonl", "application/x-tex", "application/x-www-form-urlencoded", octets, "image/png",
		"image/jpeg", "image/gif", "application/gzip", "application/tzif", "application/x-elf",
		"application/x-object", "application/x-executable", "application/x-sharedlib", "application/x-coredump",
		"application/x-bytecode.python", "application/zip", "application/pdf",
	} {
		m := mimetype.Lookup(mime)
		if m == nil {
			if !IsText(mime) {
				t.Errorf("IsText(%q) = false, and the library knows none such", mime)
			}
			continue
		}
		text := false
		for ; m != nil; m = m.Parent() {
			text = text || bare(m.String()) == plain
		}
		if IsText(mime) != text {
			t.Errorf("IsText(%q) = %t", mime, !text)
		}
	}
}

func FuzzQuick(f *testing.F) {
	for offset, signs := range signatures {
		for _, sign := range signs {
			f.Add([]byte(strings.Repeat("a", offset) + sign + "\nwords, more\n"))
		}
	}
	for _, body := range bodies() {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, head []byte) { judge(t, "fuzz", head) })
}
