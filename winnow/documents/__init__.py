"""Documents of a folder: conversion to text with structure, cutting into passages, and syncing."""
